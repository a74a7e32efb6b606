/** The query that every engine compiles: revenue and orders by month and status, filtered, top ten. */
export function questionOf(variant: number): string {
  const status = variant % 2 === 0 ? 'paid' : 'open';
  return (
    `select date_trunc('month', created_at) as month, status, sum(amount) as revenue, count(*) as orders ` +
    `from osl.entities.orders where status = '${status}' and amount > ${variant} and created_at >= '2026-01-01' ` +
    `group by 1, 2 having count(*) > ${variant % 7} order by revenue desc limit 10`
  );
}
