"""Sentences that the network reads while it is built and verified. Leaf data of the build.

Those of the verification are not those of the calibration: what was fitted proves nothing.
"""

from __future__ import annotations

CALIBRATION = (
    "The conveyor in line two runs again, and the guard door is closed.",
    "Please bring the report to the office before nine in the morning.",
    "Attention, the level in tank seven is low, open the inlet slowly.",
    "She asked how their work was, and they said it was all good, thank you.",
    "传送带已经恢复运行，请注意安全，不要靠近机器。",
    "今天上午九点开会，请大家准时到会议室来。",
    "注意，七号水箱水位过低，请打开进水阀门。",
    "我们都觉得这个问题不难，明天再一起想办法吧。",
)
VERIFICATION = (
    "The pump in hall three has stopped, please check the valve.",
    "Good morning, this is a test of the speech output.",
    "三号车间的水泵已经停止，请检查阀门。",
    "你好，欢迎使用语音播报系统。",
)
