import { Client } from 'pg';
import { type Gateway, SUBJECT } from './gateway.js';

/** Waits until the gateway can answer about its catalog: the image that all catalogs begin from is made by then. */
export async function readied(gateway: Gateway): Promise<void> {
  const client = new Client({
    host: '127.0.0.1',
    port: gateway.pgPort,
    user: SUBJECT,
    database: 'osl',
    password: await gateway.token(),
  });
  await client.connect();
  try {
    await client.query('select relname from pg_catalog.pg_class limit 1');
  } finally {
    await client.end();
  }
}
