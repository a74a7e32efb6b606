import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { eventually, type RestFixture } from './fixture.js';

export const ROWS = 20_000;
const FAILS_AT = 15_000;

/** Some 20 MB of rows in the order of their ids. */
export const LARGE = {
  manifest: `
version: 1
tenant: shop
connectors:
  db: { kind: pglite, tables: { shop.events: { columns: { id: { type: int4 }, filler: { type: text } } } } }
entities:
  event: { source: db.shop.events, primary_key: [id], columns: [id, filler] }
`,
  policy: `
version: 1
tenant: shop
subjects: { "user:ann": { ceiling: [reader] } }
roles: { reader: { grants: [{ on: event, columns: "*" }] } }
masks: {}
limits: { query: 1000 }
`,
  script: `
CREATE SCHEMA shop;
CREATE TABLE shop.events (id int4 PRIMARY KEY, filler text);
INSERT INTO shop.events SELECT n, repeat('x', 1000) FROM generate_series(1, ${ROWS}) AS n;
`,
};
export const ALL = 'SELECT id, filler FROM osl.entities.event';
export const BREAKS = `SELECT id, filler, 1 / (id - ${FAILS_AT}) AS q FROM osl.entities.event`;
/** Sends a question and gives the answer before its body is read. */
export async function begin(fixture: RestFixture, osql: string, headers: Record<string, string> = {}) {
  const outgoing = request({
    port: fixture.port,
    host: '127.0.0.1',
    path: '/osl/query',
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${await fixture.test.token('user:ann')}`,
      ...headers,
    },
  });
  outgoing.on('error', () => undefined);
  outgoing.end(JSON.stringify({ osql }));
  return outgoing;
}

export async function answerOf(outgoing: ReturnType<typeof request>): Promise<IncomingMessage> {
  const [incoming] = await once(outgoing, 'response');
  return incoming;
}

export async function outcomeOf(fixture: RestFixture, requestId: string) {
  await eventually(async () => (await fixture.trail(requestId)).length === 2);
  return (await fixture.trail(requestId))[1];
}
