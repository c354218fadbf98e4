"""Who wants what: binding and routing keys, content predicates, and the index that finds an event's subscriptions."""
