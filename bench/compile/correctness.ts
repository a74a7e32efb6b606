import type { Client } from 'pg';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import type { Table } from '../report.js';
import { type Gateway, SUBJECT, startGateway } from '../support/gateway.js';
import { withClient, withPostgres } from '../support/postgres.js';
import type { PeerStatement } from './peer-messages.js';
import type { Form, Peer } from './peers.js';
import { ORACLE, type Row, SHOP } from './shop.js';

/** Two queries on which semantic layers disagree, and the result of each engine's SQL on a real Postgres. */
export async function correctness(peers: readonly Peer[]): Promise<Table> {
  const rows: string[][] = [];
  await withPostgres([SHOP], async (postgres) => {
    rows.push(...(await ours(postgres)));
    await withClient(postgres.url, async (client) => {
      for (const peer of peers) {
        for (const form of peer.forms)
          rows.push([form.question, peer.name, form.form, await verdict(client, form)]);
      }
    });
  });
  return {
    name: 'compile: who is right',
    about: ABOUT,
    head: ['question', 'engine', 'asked as', 'verdict'],
    rows: rows.sort(byQuestion),
  };
}

const ABOUT =
  "Each engine's SQL is run on Postgres, and its rows are compared with an oracle that counts in JavaScript. " +
  'Fan-out: revenue and units by customer region, over customers, their orders and the line items of these. ' +
  'Left join: for every customer the number of orders, for a caller who may see the orders of region eu only.';

function byQuestion([a = '']: readonly string[], [b = '']: readonly string[]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

// ---- ours: the product itself, queried over the wire --------------------------------------------------------------
// --------------------------------------------------------------

interface Asked {
  readonly question: Form['question'];
  readonly form: string;
  readonly sql: string;
}

const FROM =
  'from osl.entities.customers c left join osl.entities.orders o on o.customer_id = c.id ' +
  'left join osl.entities.line_items l on l.order_id = o.id group by c.region order by c.region';

const OURS: readonly Asked[] = [
  {
    question: 'fan-out',
    form: '`MEASURE(revenue)`, `MEASURE(units)` over the join',
    sql: `select c.region, measure(revenue), measure(units) ${FROM}`,
  },
  {
    question: 'fan-out',
    form: 'a subquery an order, then `sum`',
    sql:
      'select c.region, sum(o.amount), sum(l.units)::int8 from osl.entities.customers c ' +
      'left join osl.entities.orders o on o.customer_id = c.id ' +
      'left join (select order_id, sum(quantity) as units from osl.entities.line_items group by order_id) l ' +
      'on l.order_id = o.id group by c.region order by c.region',
  },
  {
    question: 'left join',
    form: 'policy with a row filter, `LEFT JOIN`, `count(o.id)`',
    sql:
      'select c.id, count(o.id) from osl.entities.customers c ' +
      'left join osl.entities.own_orders o on o.customer_id = c.id group by c.id order by c.id',
  },
];

async function ours(postgres: NativePostgres): Promise<string[][]> {
  const files = {
    manifestFile: 'bench/compile/shop-manifest.yaml',
    policyFile: 'bench/compile/shop-policy.yaml',
  };
  const gateway = await startGateway({ ...files, postgres });
  try {
    return await withClient(await wireUrl(gateway), async (client) => {
      const rows: string[][] = [];
      for (const asked of OURS) {
        const statement = async (): Promise<PeerStatement> => ({ sql: asked.sql, params: [] });
        rows.push([
          asked.question,
          'OSL Gateway',
          asked.form,
          await verdict(client, { ...asked, statement }),
        ]);
      }
      return rows;
    });
  } finally {
    await gateway.stop();
  }
}

async function wireUrl(gateway: Gateway): Promise<string> {
  const user = encodeURIComponent(SUBJECT);
  return `postgres://${user}:${await gateway.token()}@127.0.0.1:${gateway.pgPort}/osl`;
}

// ---- verdicts -----------------------------------------------------------------------------------------------------

async function verdict(client: Client, form: Form): Promise<string> {
  let statement: PeerStatement;
  try {
    statement = await form.statement();
  } catch (error) {
    return `not expressible: ${lineOf(error)}`;
  }
  try {
    const { rows } = await client.query({
      text: statement.sql,
      values: [...statement.params],
      rowMode: 'array',
    });
    return judge(rows.map(asRow), ORACLE[form.question]);
  } catch (error) {
    return `refused: ${lineOf(error)}`;
  }
}

function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split('\n')[0] ?? '').replaceAll('|', '\\|').replaceAll('`', "'");
}

/** The group, then its figures; Malloy returns each row as one JSON object. */
function asRow(row: unknown): Row {
  const cells: readonly unknown[] = Array.isArray(row) ? row : [];
  const [first] = cells;
  const values = typeof first === 'object' && first !== null ? Object.values(first) : cells;
  return values.map((value) => (value === null ? null : String(value)));
}

function judge(given: readonly Row[], right: readonly Row[]): string {
  const byGroup = new Map(given.map((row) => [row[0], row]));
  const missing = right.filter((row) => !byGroup.has(row[0])).length;
  if (missing > 0) return `**wrong**: ${missing} of ${right.length} groups are missing`;
  if (given.length !== right.length) return `**wrong**: ${given.length} rows, not ${right.length}`;
  const wrong = right.filter((row) => !sameRow(row, byGroup.get(row[0])));
  const [example] = wrong;
  if (example === undefined) return 'right';
  const got = byGroup.get(example[0])?.slice(1).map(shown).join(', ');
  const rest = `${shown(example[0])} has ${got}, not ${example.slice(1).map(shown).join(', ')}`;
  return `**wrong** in ${wrong.length} of ${right.length} groups: ${rest}`;
}

function shown(cell: string | null | undefined): string {
  return cell === null || cell === undefined ? 'NULL' : cell;
}

/** Compares figures as numbers, so 1 equals 1.00. NULL equals no number. */
function sameRow(a: Row, b: Row | undefined): boolean {
  return a.every((cell, i) => {
    const other = b?.[i];
    if (cell === null || other === null || other === undefined) return cell === other;
    return cell === other || (i > 0 && Math.abs(Number(cell) - Number(other)) < 1e-6);
  });
}
