"""What people say in a chat or at a pager: signature, sender, words. The rest is as for any operator command."""
