import pg from 'pg';

/** A session of node-postgres with a gateway on this machine. */
export async function connectPg({
  port,
  ...options
}: Omit<pg.ClientConfig, 'port'> & { readonly port: unknown }): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', database: 'osl', ...options, port: Number(port) });
  await client.connect();
  return client;
}
