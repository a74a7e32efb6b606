import { Client } from 'pg';

/** A session whose names are those of `schema`. */
export async function sessionWith(connectionString: string, schema: string): Promise<Client> {
  const client = new Client({ connectionString });
  await client.connect();
  await client.query(`set search_path = ${schema}`);
  return client;
}
