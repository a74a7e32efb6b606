import { ready } from 'osl-compiler';
import type { Diagnostic } from '../../../src/model/manifest/index.js';
import { ManifestProblems, parseManifest, parsePolicyDocument } from '../../../src/model/manifest/index.js';

await ready();

/** A small valid manifest; cases change a line of it. */
export const MANIFEST = `version: 1
connectors:
  db:
    kind: pglite
    tables:
      sales.orders:
        columns:
          id: { type: int8 }
          customer_id: { type: int4 }
          amount: { type: numeric }
          note: { type: text, pii: true }
          body: { type: text }
      sales.customers:
        columns:
          id: { type: int4 }
          tax_no: { type: varchar, sensitivity: secret }
      sales.tags:
        columns:
          order_id: { type: int8 }
          customer_id: { type: int4 }
          weight: { type: float8 }
entities:
  order:
    source: db.sales.orders
    primary_key: [id]
    entity_key_columns: [id, customer_id]
    columns: [id, customer_id, amount]
  customer:
    source: { connector: db, table: sales.customers }
    primary_key: [id]
    columns:
      id:
      tax: { column: tax_no, description: Tax number }
bridges:
  tag:
    source: db.sales.tags
    left: { entity: order, columns: [order_id] }
    right: { entity: customer, columns: [customer_id] }
    columns: [order_id, customer_id, weight]
relationships:
  order_customer: { from: order.customer_id, to: customer.id, kind: many_to_one }
facets:
  notes:
    source: db.sales.orders
    entity: order
    entity_key: id
    document_id: id
    text: body
    metadata: [customer_id]
    scalar_indexed: [id, customer_id]
    versions: { raw: {}, masked: { redact: [pii], detectors: [email] } }
    retrieval: { max_top_k: 50 }
metrics:
  revenue: { entity: order, expression: sum(amount), filter: amount > 0 }
lexicon:
  turnover: { refers_to: revenue, synonyms: [sales] }
`;

export const POLICY = `version: 1
tenant: demo
subjects:
  user:a: { ceiling: [r], attributes: { region: eu, teams: [x, y], team: { any: true } } }
roles:
  r:
    grants:
      - { on: order, columns: "*", rows: amount > 0 }
masks: { pii: redact }
`;

/** The text with `from`, which must occur once, replaced. */
export function edited(text: string, from: string, to: string): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`\`${from}\` occurs ${parts.length - 1} times`);
  return parts.join(to);
}

/** Returns the diagnostics of a text, one line each: `line:column-column CODE message (hint)`. */
function verdict(parse: (text: string, file: string) => unknown, text: string): readonly string[] {
  try {
    parse(text, 'm.yaml');
    return [];
  } catch (error) {
    if (error instanceof ManifestProblems) return error.diagnostics.map(line);
    throw error;
  }
}

export const ofManifest = (text: string) => verdict(parseManifest, text);
export const ofPolicy = (text: string) => verdict(parsePolicyDocument, text);

export function line(d: Diagnostic): string {
  const { start, end } = d.range;
  const to = end.line === start.line ? end.column : `${end.line}:${end.column}`;
  return `${start.line}:${start.column}-${to} ${d.code} ${d.message}${d.hint === null ? '' : ` (${d.hint})`}`;
}
