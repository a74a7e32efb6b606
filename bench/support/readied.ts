import { connected } from './client.js';
import type { Gateway } from './gateway.js';

/** Waits until the gateway can answer catalog queries, by which time the base image of all catalogs exists. */
export async function readied(gateway: Gateway): Promise<void> {
  const client = await connected(gateway);
  try {
    await client.query('select relname from pg_catalog.pg_class limit 1');
  } finally {
    await client.end();
  }
}
