/** The REST surface that the tools call, with the caller's own token and nothing else. */
export interface RestClient {
  /** Where the service answers, without a `/` at its end. */
  readonly url: string;
  /** Sent along with every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The bearer token of the next call. A rejection is told to the model as a failed call. */
  token(): Promise<string>;
}

/** The engine refused, or could not be reached: what an MCP error says of it. */
export class EngineRefusal extends Error {
  /** HTTP status; null where there was no answer. */
  readonly status: number | null;
  /** The problem as the engine wrote it; null where there is none. */
  readonly envelope: Readonly<Record<string, unknown>> | null;
  readonly requestId: string | null;

  constructor(
    status: number | null,
    envelope: Readonly<Record<string, unknown>> | null,
    requestId: string | null,
    message: string,
  ) {
    super(message);
    this.name = 'EngineRefusal';
    this.status = status;
    this.envelope = envelope;
    this.requestId = requestId;
  }
}

export interface Sent {
  readonly path: string;
  /** Sent as JSON by POST; without it the call is a GET. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly accept: string;
  readonly signal: AbortSignal;
}

/** Calls the engine. @throws EngineRefusal for anything but a 2xx answer */
export async function send(client: RestClient, sent: Sent): Promise<Response> {
  const token = await client.token();
  const headers = { ...client.headers, authorization: `Bearer ${token}`, accept: sent.accept };
  const content =
    sent.body === undefined
      ? { headers }
      : {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify(sent.body),
        };
  let response: Response;
  try {
    // A redirect would carry the token elsewhere.
    response = await fetch(`${client.url}${sent.path}`, {
      ...content,
      redirect: 'error',
      signal: sent.signal,
    });
  } catch {
    throw unreachable();
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

export function unreachable(): EngineRefusal {
  return new EngineRefusal(null, null, null, 'the engine did not answer, or broke off its answer');
}

/** Bytes of an error's body that are read. */
const MAX_PROBLEM_BYTES = 65_536;

async function refusalOf(response: Response): Promise<EngineRefusal> {
  const requestId = response.headers.get('x-request-id');
  let envelope: Readonly<Record<string, unknown>> | null = null;
  try {
    const text = await response.text();
    if (text.length <= MAX_PROBLEM_BYTES) envelope = objectIn(text);
  } catch {
    // The status is known; that must do.
  }
  const detail = envelope?.['detail'];
  const said = typeof detail === 'string' ? detail : 'the engine refused without saying why';
  return new EngineRefusal(response.status, envelope, requestId, said);
}

/** The object that `text` is in JSON; null where it is none. */
export function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
