### 首页：需要人工的、自动修复中的、已结束的。

now-needs = 需要人工
now-needs-none = 目前没有需要您处理的事项。
now-heals = 自动修复中
now-was = 已结束
