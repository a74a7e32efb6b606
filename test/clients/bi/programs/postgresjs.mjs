import postgres from 'postgres';

const sql = postgres({ ssl: false, max: 1 });
const go = async (f) => {
  try {
    await f();
  } catch (x) {
    console.error(String(x).slice(0, 300));
  }
};
await go(() => sql`select * from customer order by id`);
await go(
  () =>
    sql`select id, amount from "order" where status in ${sql(['new', 'paid'])} and quantity > ${5} order by id`,
);
await go(() => sql`select ${sql(['id', 'name'])} from customer where region = ${'eu'} order by id`);
await go(() => sql`select * from "order" where id = any(${[1, 2, 3]}) order by id`);
await go(() => sql`select * from event where at > ${new Date('2026-01-20')} order by id limit 5`);
await go(() =>
  sql.begin('read only', async (t) => {
    await t`select count(*) from product`;
    await t.savepoint((s) => s`select 1 as x`);
  }),
);
await go(() => sql`select 1 as x`.simple());
await go(async () => {
  for await (const r of sql`select id from "order" order by id`.cursor(50)) void r;
});
await sql.end();
