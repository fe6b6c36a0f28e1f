"""What agent and brain both use, apart from messages: tasks, tools, small files, secrets, rtnetlink, NATS connections."""
