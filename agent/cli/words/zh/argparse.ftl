### What argparse says itself.

ambiguous-option-option-s-could-match-matches-s = 选项不明确：%(option)s 可能是 %(matches)s
argument-argument-name-s-message-s = 参数 %(argument_name)s：%(message)s
expected-at-least-one-argument = 至少一个值
expected-at-most-one-argument = 最多一个值
expected-one-argument = 需要一个值
expected-s-argument = 需要 %s 个值
expected-s-arguments = 需要 %s 个值
ignored-explicit-argument-r = 多余的值 %r
invalid-choice-value-r-choose-from-choices-s = 无效的选择：%(value)r（可选：%(choices)s）
invalid-type-s-value-value-r = 无效的 %(type)s 值：%(value)r
not-allowed-with-argument-s = 不能与参数 %s 一起使用
one-of-the-arguments-s-is-required = 必须给出以下参数之一：%s
options = 选项
positional-arguments = 位置参数
prog-s-error-message-s = %(prog)s：错误：%(message)s
s-usage-44dbac5d = 用法：
show-this-help-message-and-exit = 显示此帮助并退出
the-following-arguments-are-required-s = 缺少必需的参数：%s
unrecognized-arguments-s = 无法识别的参数：%s
