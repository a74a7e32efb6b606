import { createServer, type Socket } from 'node:net';
import { type ProxyOptions, serveClient } from './connection.js';

export interface LocalProxy {
  readonly port: number;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Listens on loopback only: whoever reaches the proxy has the rights of its tokens. */
export async function listenProxy(port: number, options: ProxyOptions): Promise<LocalProxy> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    void serveClient(client, options);
  });
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject); // also of a client that cannot be taken, later
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const client of clients) client.destroy();
      }),
  };
}
