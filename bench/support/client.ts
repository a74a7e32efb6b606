import { Client } from 'pg';
import { type Gateway, ROLE, SUBJECT } from './gateway.js';

/** A client that has logged in. If its connection breaks, its next query fails. */
export async function connected(gateway: Gateway, subject = SUBJECT, role = ROLE): Promise<Client> {
  const client = new Client({
    host: '127.0.0.1',
    port: gateway.pgPort,
    user: subject,
    database: 'osl',
    password: await gateway.token(subject, role),
  });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
