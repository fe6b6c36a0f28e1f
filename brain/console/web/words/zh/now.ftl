### 首页：需要人工的、自动修复中的、已结束的。

now-needs = 需要人工
now-needs-none = 目前没有需要您处理的事项。
now-not-known = 目前尚不清楚。
now-more = 另有 { $n } 项
now-heals = 自动修复中
now-was = 过去 24 小时内已结束
now-was-none = 没有。
healed-by = 由 { $runbook } 修复
went-away = 已消失
holds = 暂停中的对象
need-approval = 等待批准
need-no_remedy = 已无可用手段
need-breaker = 熔断器已跳闸
need-hold_stands = 没有期限的暂停
need-hold_ends = 暂停即将到期
need-page = 尚无人确认
need-drained = 已退出服务
