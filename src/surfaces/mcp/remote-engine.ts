import { isTask } from '../../ask/request/task.js';
import { problemOf } from '../rest/problem.js';
import {
  AnswerReader,
  type Engine,
  EngineRefusal,
  type JsonDocument,
  objectIn,
  unreachable,
  withExplain,
} from './engine.js';

/** REST connection to a server, with the caller's own token. */
export interface RestClient {
  /** Base URL without trailing `/`. */
  readonly url: string;
  /** Sends a request. It must not follow redirects, which could send the token to another host. */
  fetch(
    url: string,
    init: {
      readonly method?: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly signal: AbortSignal;
    },
  ): Promise<Response>;
  token(): Promise<string>;
}

const QUERY = '/osl/query';
const JSON_TYPE = 'application/json';

export function remoteEngine(client: RestClient): Engine {
  return {
    query: async (question, { maxBytes, receipt, task, approvalReason }, signal) => {
      const response = await send(client, {
        path: QUERY,
        body: question,
        accept: 'application/x-ndjson',
        ...(receipt && { prefer: 'receipt' }),
        task,
        approvalReason,
        signal,
      });
      return readAnswer(response, maxBytes);
    },
    explain: async (question, task, signal) => {
      const body = withExplain(question);
      return documentOf(await send(client, { path: QUERY, body, accept: JSON_TYPE, task, signal }));
    },
    schema: async (wish, signal) => {
      const parameters = new URLSearchParams({ governed: 'true' });
      for (const [name, value] of Object.entries(wish)) parameters.set(name, String(value));
      return documentOf(await send(client, { path: `/osl/schema?${parameters}`, accept: JSON_TYPE, signal }));
    },
    // The server never received the call, so it has no record of it.
    refuse: async (_, fault) => {
      const problem = { ...problemOf(fault, ''), request_id: null };
      return new EngineRefusal(fault.http, problem, null, fault.message);
    },
  };
}

interface EngineCall {
  readonly path: string;
  /** JSON body of a POST; if absent, the call is a GET. */
  readonly body?: string;
  readonly accept: string;
  readonly prefer?: string;
  readonly task?: string | null;
  readonly approvalReason?: string | null;
  readonly signal: AbortSignal;
}

/** @throws EngineRefusal unless the status is 2xx */
async function send(client: RestClient, sent: EngineCall): Promise<Response> {
  const token = await client.token();
  const { accept, prefer, task = null, approvalReason: reason = null } = sent;
  const headers = {
    authorization: `Bearer ${token}`,
    accept,
    ...(prefer !== undefined && { prefer }),
    // The server refuses an empty name.
    ...(task !== null && { 'osl-task': isTask(task) ? encodeURIComponent(task) : '' }),
    ...(reason !== null && {
      'osl-approval-reason': /\p{Cs}/u.test(reason) ? '' : encodeURIComponent(reason),
    }),
  };
  const content =
    sent.body === undefined
      ? { headers }
      : {
          method: 'POST',
          headers: { ...headers, 'content-type': JSON_TYPE },
          body: sent.body,
        };
  let response: Response;
  try {
    response = await client.fetch(`${client.url}${sent.path}`, { ...content, signal: sent.signal });
  } catch {
    throw unreachable();
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

const MAX_PROBLEM_BYTES = 65_536;

async function refusalOf(response: Response): Promise<EngineRefusal> {
  const requestId = response.headers.get('x-request-id');
  let envelope: Readonly<Record<string, unknown>> | null = null;
  try {
    const text = await response.text();
    if (text.length <= MAX_PROBLEM_BYTES) envelope = objectIn(text);
  } catch {
    // The status code alone is sufficient.
  }
  const detail = envelope?.['detail'];
  const message = typeof detail === 'string' ? detail : 'the engine refused without saying why';
  return new EngineRefusal(response.status, envelope, requestId, message);
}

/** @throws EngineRefusal if the answer is cut off or its trailer reports a failure */
async function readAnswer(response: Response, maxBytes: number) {
  const reader = new AnswerReader(maxBytes);
  const decoder = new TextDecoder();
  try {
    // Node's response streams are async iterable, but the type of `fetch` does not say so.
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>)
      reader.read(decoder.decode(chunk, { stream: true }));
  } catch {
    throw unreachable();
  }
  return reader.end();
}

async function documentOf(response: Response): Promise<JsonDocument> {
  const text = await response.text().catch(() => {
    throw unreachable();
  });
  return { text, requestId: response.headers.get('x-request-id') };
}
