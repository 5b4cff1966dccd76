"""The ChatTTS compiler: reads a checkpoint in the published layout and builds graphs from it.

CLI process only. `checkpoint.py` reads, `layout.py` knows what must be there; `vocoder.py` and
`encoder.py` describe the graphs between speech and the language model.
"""
