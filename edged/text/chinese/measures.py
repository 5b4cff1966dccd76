"""The Han words after a number before which 2 is 两. Pure table.

Counts and durations take 两 (两台, 两年); names and ranks keep 二 (二号, 二月, 二楼, 二级). Neighbours:
`quantities.py`.
"""

from __future__ import annotations

import re

_WORDS = """
个 只 台 辆 件 套 张 条 根 块 片 支 枝 把 双 对 名 位 人 天 年 周 小时 分钟 秒 倍 种 项 步 遍 次 趟 回 份
封 本 册 棵 颗 粒 滴 页 批 箱 袋 瓶 桶 包 盒 罐 卷 捆 盘 架 艘 座 家 间 栋 扇 盏 口 面 边 侧 端 头 处 队
班次 轮 场 顿 杯 碗 度 岁 元 美元 欧元 英镑 日元 角 分 毛 米 厘米 毫米 微米 千米 公里 分米 克 千克 公斤
毫克 吨 升 毫升 平方 平方米 立方米 立方 公顷 亩 斤 里 万 亿 千瓦 千帕 千伏 兆瓦 兆帕 毫安 安培 伏 伏特 瓦
赫兹 巴 摄氏度 点 刻钟 星期 礼拜 个月 世纪 时 字节 转 节 道 样 句 字 部 门 笔 股 束 串 圈 格 点钟 等份 者
成
""".split()
# Ranks and places as often as counts: counts where a word before says so.
_EITHER = "层 排 列 组 段 行".split()
_NAMES = """
年级 月 月份 日 号 楼 级 等 档 期 区 线 班 路 车间 单元 类 型 代 世 分之 分厂 厂 部门 次方 组长 层楼 点零
极管 维 进制 手 甲 氧化 段线 段式
""".split()
_LONGEST_FIRST = sorted({*_WORDS, *_EITHER, *_NAMES}, key=len, reverse=True)
_NEXT = re.compile(r"\s?(?:来|多|余|几)?(" + "|".join(map(re.escape, _LONGEST_FIRST)) + ")")
_COUNTED = frozenset(_WORDS)
_RANKED = frozenset(_EITHER)
_COUNT_BEFORE = re.compile(r"[共有每各分需这那为剩差加减满叠超约仅]\s?$")


def follows(view: str, start: int, end: int) -> bool:
    """Whether a word at `end` counts something, of which there are the number [start, end)."""
    match = _NEXT.match(view, end)
    if match is None:
        return False
    if match[1] in _RANKED:
        return _COUNT_BEFORE.search(view, max(0, start - 2), start) is not None
    return match[1] in _COUNTED
