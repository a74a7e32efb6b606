import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DIMENSIONS } from './corpus.js';

/**
 * An OpenAI-compatible endpoint that looks vectors up instead of computing them, so that no model's time is measured.
 */
export interface Embeddings {
  /** Base URL, including `/v1`. */
  readonly url: string;
  /** Text for which the endpoint returns `vector`, which is in pgvector's text format. */
  textOf(vector: string): string;
  close(): Promise<void>;
}

export async function startEmbeddings(): Promise<Embeddings> {
  const vectors = new Map<string, string>();
  const unknown = `[1${',0'.repeat(DIMENSIONS - 1)}]`;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { input }: { input: readonly string[] } = JSON.parse(Buffer.concat(parts).toString('utf8'));
      const data = input.map((text, i) => `{"index":${i},"embedding":${vectors.get(text) ?? unknown}}`);
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"data":[${data.join(',')}]}`);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}/v1`,
    textOf(vector) {
      const text = `query ${vectors.size}`;
      vectors.set(text, vector);
      return text;
    },
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}
