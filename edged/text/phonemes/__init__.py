"""How words sound: pinyin and IPA checked, and put into what a voice takes. Below `text`; pure."""
