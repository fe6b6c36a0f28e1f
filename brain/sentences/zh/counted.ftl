### 数量。

count-command = { $n } 个命令
count-day = { $n } 天
count-disruptive-run = { $n } 个有影响业务的运行
count-fault = { $n } 次故障
count-gpu = { $n } 块 GPU
count-hour = { $n } 小时
count-incident = { $n } 个故障
count-line = { $n } 行
count-message = { $n } 条消息
count-minute = { $n } 分钟
count-more-job = 另外 { $n } 个作业
count-more-node = 又有 { $n } 个节点
count-node = { $n } 个节点
count-other-node = { $n } 个其他节点
count-page = { $n } 次呼叫
count-question = { $n } 个问题
count-remedy = { $n } 次修复
count-rule = { $n } 条规则
count-runbook = { $n } 个修复手册
count-second = { $n } 秒
count-time = { $n } 次
count-alert = { $n } 个告警
count-job = { $n } 个作业
count-user = { $n } 个用户
