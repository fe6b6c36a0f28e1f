### 审计：谁做了什么，结果如何。

audit-kind = 类别
audit-kind-operator = 人员操作
audit-kind-access = 登录与令牌
audit-kind-page = 告警通知
audit-kind-incident = 故障
audit-kind-run = 修复流程
audit-kind-step = 步骤
audit-kind-symptom = 症状
audit-kind-node = 节点
audit-kind-hold = 到期的暂停
audit-kind-brain = brain 自身
audit-who = 人员
audit-incident = 故障
audit-run = 修复流程
audit-until = 截至
audit-export = 导出 JSONL
audit-more = 更多筛选
audit-none = 没有符合条件的记录。
audit-only = 只看 { $what } 的操作
audit-fresh = { $n } 条新记录
