import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

export interface ModelServer {
  /** With `/v1`. */
  readonly url: string;
  readonly asked: Asked[];
  /** Sets the handler of all later requests. */
  answer: (asked: Asked, response: ServerResponse) => void;
  close(): Promise<void>;
}

/** A real HTTP server that speaks the OpenAI protocol as far as `answer` does. */
export async function modelServer(): Promise<ModelServer> {
  const state: { asked: Asked[]; answer: ModelServer['answer'] } = {
    asked: [],
    answer: (_, r) => void r.writeHead(500).end(),
  };
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      const asked = { path: request.url ?? '', headers: request.headers, body: JSON.parse(text) };
      state.asked.push(asked);
      state.answer(asked, response);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked: state.asked,
    get answer() {
      return state.answer;
    },
    set answer(answer) {
      state.answer = answer;
    },
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

export function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** A chat answer whose content is `content`, as JSON unless it is a text. */
export function chat(response: ServerResponse, content: unknown, more: Record<string, unknown> = {}): void {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  json(response, {
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text }, ...more }],
  });
}
