import type pg from 'pg';
import type { Entry, Kind, Source } from './corpus.js';
import { EXCEPTIONS, type Exception, under } from './exceptions.js';
import { difference, type Grade, grade, inline, type Outcome, outcomeOf } from './grade.js';
import { withOids } from './statement.js';

/** Outcome of one entry of a tool. */
export interface Measured {
  readonly tool: string;
  readonly source: Source;
  readonly kind: Kind;
  readonly what: string;
  readonly grade: Grade;
  /** Message of the gateway if it refused; the difference if it is wrong. */
  readonly said: string;
  /** The reason that the corpus gives for a refusal. */
  readonly reason: string | null;
  /** Postgres itself refuses it, which only a session may mean to provoke. */
  readonly fault: string | null;
}

/** The two that are asked. */
export interface Pair {
  readonly ours: Asked;
  readonly theirs: Asked;
}

export interface Asked {
  readonly client: pg.Client;
  readonly oids: ReadonlyMap<string, string>;
  /** Name here; `'osl'` in a statement stands for it. */
  readonly database: string;
}

const RESTORE = ['ROLLBACK', 'CLOSE ALL', 'RESET ALL', 'DEALLOCATE ALL'];

/** Asks both for every statement of `entry`, in order, and grades the worst. */
export async function measured(
  pair: Pair,
  tool: string,
  source: Source,
  entry: Entry,
  protocol: 'simple' | 'extended',
  used: Set<Exception>,
): Promise<Measured> {
  let worst: Grade = 'equal';
  let said = '';
  let fault: string | null = null;
  for (const sql of entry.statements) {
    const [ours, theirs] = await Promise.all([
      answerOf(pair.ours, entry, sql, protocol),
      answerOf(pair.theirs, entry, sql, protocol),
    ]);
    const graded = gradeUnder(entry.kind, sql, ours, theirs, used);
    if (theirs.kind === 'error' && entry.kind === 'data' && entry.refused === undefined)
      fault = `${theirs.sqlstate} ${theirs.message}`;
    if (graded === 'equal') continue;
    worst = graded;
    said =
      ours.kind === 'error' ? `${ours.sqlstate} ${ours.message}` : JSON.stringify(difference(ours, theirs));
    break; // what follows in a session depends on it
  }
  if (entry.kind === 'session') {
    for (const { client } of [pair.ours, pair.theirs])
      for (const sql of RESTORE) await client.query(sql).catch(() => undefined);
  }
  return {
    tool,
    source,
    kind: entry.kind,
    what: entry.what,
    grade: worst,
    said,
    reason: entry.refused ?? null,
    fault,
  };
}

function answerOf(
  { client, oids, database }: Asked,
  { kind, values = [] }: Entry,
  sql: string,
  protocol: 'simple' | 'extended',
): Promise<Outcome> {
  const here = (text: string): string => withOids(text, oids).replaceAll("'osl'", `'${database}'`);
  const bound = values.map((v) => (v === null ? null : v === 'osl' ? database : here(v)));
  const compared = kind === 'data' ? 'exact' : 'of a server';
  return protocol === 'extended'
    ? outcomeOf(client, here(sql), bound, compared)
    : outcomeOf(client, inline(here(sql), bound), null, compared);
}

function gradeUnder(kind: Kind, sql: string, ours: Outcome, theirs: Outcome, used: Set<Exception>): Grade {
  const graded = grade(sql, ours, theirs);
  const exception = EXCEPTIONS.find(
    (e) =>
      (kind !== 'data' || e.data === true) &&
      (graded === 'wrong' || (e.always === true && graded === 'equal')) &&
      e.pattern.test(sql) &&
      grade(sql, under(e, ours), under(e, theirs)) === 'equal',
  );
  if (exception === undefined) return graded;
  used.add(exception);
  return 'equal';
}
