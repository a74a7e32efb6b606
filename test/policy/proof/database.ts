import { PGlite } from '@electric-sql/pglite';
import type { Test } from 'tap';

/** A table of the embedded database, to compare truth values with. */
export interface TestDatabase {
  fill(rows: readonly Readonly<Record<string, string | null>>[]): Promise<void>;
  /** Truth value of a predicate for each row, in their order; `error` if it fails for the row. */
  truthsOf(predicate: string): Promise<readonly (boolean | null | 'error')[]>;
}

export async function openEngineOf(
  t: Pick<Test, 'teardown'>,
  columns: readonly (readonly [name: string, type: string])[],
): Promise<TestDatabase> {
  const database = await PGlite.create();
  t.teardown(() => database.close());
  await database.exec(
    `create table sample (nr int, ${columns.map(([name, type]) => `${name} ${type}`).join(', ')})`,
  );
  let count = 0;
  return {
    fill: async (rows) => {
      count = rows.length;
      for (const [i, row] of rows.entries())
        await database.query(
          `insert into sample values (${[i, ...columns].map((_, n) => `$${n + 1}`).join(', ')})`,
          [i, ...columns.map(([name]) => row[name] ?? null)],
        );
    },
    truthsOf: async (predicate) => {
      const values: (boolean | null | 'error')[] = [];
      for (let i = 0; i < count; i++)
        values.push(
          await database
            .query<{ x: boolean | null }>(`select (${predicate}) as x from sample where nr = $1`, [i])
            .then(({ rows }) => rows[0]?.x ?? null)
            .catch(() => 'error' as const),
        );
      return values;
    },
  };
}
