/** A statement of the bench, and what its table is an example of. */
export interface SpeedStatement {
  readonly id: string;
  /** Shape of the policy, or of the statement for those that lose. */
  readonly shape: string;
  readonly text: string;
}

/** Three shapes of policies that cost much under row security, then ordinary statements of a policy that costs little. */
export const STATEMENTS: readonly SpeedStatement[] = [
  {
    id: 'admin_page',
    shape: 'own rows OR is_admin()',
    text: 'select id, title from app.document order by title limit 20',
  },
  {
    id: 'admin_count',
    shape: 'own rows OR is_admin()',
    text: 'select count(*) from app.document where size < 100',
  },
  {
    id: 'member_function',
    shape: 'is_member(team_id)',
    text: 'select team_id, count(*) from app.message group by team_id',
  },
  {
    id: 'member_exists',
    shape: 'EXISTS over memberships',
    text: "select count(*) from app.note where sent >= date '2025-06-01'",
  },
  {
    id: 'like_prefix',
    shape: 'LIKE beside a tenant',
    text: "select id, name, price from app.product where name like 'abc%'",
  },
  {
    id: 'like_page',
    shape: 'LIKE beside a tenant',
    text: "select id, name from app.product where name like 'ab%' order by name limit 20",
  },
  { id: 'key', shape: 'a row by its key', text: 'select id, title from app.task where id = 4713' },
  {
    id: 'range_page',
    shape: 'a page in the order of an index',
    text: "select id, title from app.task where due >= date '2025-01-01' order by due limit 20",
  },
  {
    id: 'tenant_groups',
    shape: 'all rows of a tenant, grouped',
    text: 'select due, count(*) from app.task group by due order by due',
  },
  { id: 'tenant_count', shape: 'all rows of a tenant, counted', text: 'select count(*) from app.product' },
];
