import { createPool, sql } from 'slonik';

const go = async (f) => {
  try {
    await f();
  } catch (x) {
    console.error(String(x).slice(0, 300));
  }
};
let driver;
try {
  driver = (await import('@slonik/pg-driver')).createPgDriverFactory();
} catch {}
const pool = await createPool(
  `postgresql://${encodeURIComponent(process.env.PGUSER)}:${process.env.PGPASSWORD}@127.0.0.1:${process.env.PGPORT}/${process.env.PGDATABASE}`,
  { maximumPoolSize: 1, ...(driver ? { driverFactory: driver } : {}) },
);
await go(() => pool.any(sql.unsafe`SELECT id, name FROM customer ORDER BY id`));
await go(() => pool.one(sql.unsafe`SELECT count(*) FROM "order" WHERE region = ${'eu'}`));
await go(() =>
  pool.any(sql.unsafe`SELECT id FROM "order" WHERE id = ANY(${sql.array([1, 2, 3], 'int4')}) ORDER BY id`),
);
await go(() =>
  pool.any(
    sql.unsafe`SELECT a, b FROM ${sql.unnest(
      [
        [1, 'x'],
        [2, 'y'],
      ],
      ['int4', 'text'],
    )} AS t(a, b) ORDER BY a`,
  ),
);
await go(() =>
  pool.any(
    sql.unsafe`SELECT id FROM ${sql.identifier(['entities', 'product'])} WHERE ${sql.join([sql.fragment`price > ${5}`, sql.fragment`label <> ${'pan'}`], sql.fragment` AND `)} ORDER BY id`,
  ),
);
await go(() => pool.exists(sql.unsafe`SELECT 1 FROM customer WHERE id = ${1}`));
await go(() => pool.transaction((t) => t.any(sql.unsafe`SELECT * FROM category ORDER BY id`)));
await go(() =>
  pool.any(sql.unsafe`SELECT * FROM event WHERE at < ${sql.timestamp(new Date('2026-01-05'))} ORDER BY id`),
);
await go(() =>
  pool.any(sql.unsafe`SELECT id FROM event WHERE props @> ${sql.jsonb({ ab: true })} ORDER BY id LIMIT 3`),
);
await pool.end();
