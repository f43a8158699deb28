-- Nothing but overhead: what the server does for it is as little as can be.
select 1;
