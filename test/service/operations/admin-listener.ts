import { request } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { templateOf } from '../../../src/surfaces/http/server.js';
import type { Server } from '../../tools/cli/support.js';

/** An object of JSON. */
export type Members = Readonly<Record<string, unknown>>;

export interface AdminReply {
  readonly status: number;
  readonly body: Members;
}

/** Sends one request to the admin listener of a running server. */
export function adminAsks(
  server: Server,
  method: string,
  path: string,
  token: string | null,
  body: Members | null = null,
): Promise<AdminReply> {
  const { adminPort } = server.record();
  const headers = {
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...(body !== null && { 'content-type': 'application/json' }),
  };
  const port = Number(adminPort);
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      reply.once('end', () => resolve({ status: reply.statusCode ?? 0, body: JSON.parse(text) as Members }));
    });
    sent.once('error', reject);
    sent.end(body === null ? undefined : JSON.stringify(body));
  });
}

/** A list of a body; each element is looked at where it is used. */
export function listIn(body: Members, name: string): readonly Members[] {
  return body[name] as readonly Members[];
}

type Operations = Readonly<Record<string, { readonly responses: Readonly<Record<string, unknown>> }>>;

/** Holds answers of the admin listener to its own `/openapi.json`. */
class AdminDocument {
  readonly #paths: Readonly<Record<string, Operations>>;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  /** Answers of status 200 that were checked, as `get /admin/figures`. */
  readonly checked = new Set<string>();
  /** Answers that differ from the document. */
  readonly faults: string[] = [];

  constructor(document: Members) {
    this.#paths = document['paths'] as Readonly<Record<string, Operations>>;
    this.#ajv.addSchema({ ...(closed(document) as Members), $id: 'openapi' });
  }

  /** Checks status and body; members that the document does not name are faults too. */
  check(method: string, path: string, { status, body }: AdminReply): void {
    const template = templateOf(path.split('?', 1)[0] ?? '');
    const operation = this.#paths[template]?.[method];
    if (operation === undefined) return;
    const name = `${method} ${template}`;
    if (operation.responses[status] === undefined) this.faults.push(`${name}: no status ${status}`);
    if (status !== 200 || template === '/openapi.json') return;
    const place = ['paths', template, method, 'responses', '200', 'content', 'application/json', 'schema'];
    const pointer = place.map((part) => encodeURIComponent(part.replace(/~/g, '~0').replace(/\//g, '~1')));
    const validate = this.#ajv.getSchema(`openapi#/${pointer.join('/')}`);
    if (validate === undefined) this.faults.push(`${name}: no schema`);
    else if (validate(body) !== true) this.faults.push(`${name}: ${this.#ajv.errorsText(validate.errors)}`);
    this.checked.add(name);
  }
}

/** The document with every object closed, so that an answer may have no member that it does not name. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, closed(member)]));
  const isObject = members['type'] === 'object' || [members['type']].flat().includes('object');
  const isOpen = isObject && 'properties' in members && !('additionalProperties' in members);
  return isOpen ? { ...members, additionalProperties: false } : members;
}

/** The listener of a server: `ask` holds each answer to the document that the listener gives. */
export async function checkedListener(server: Server) {
  const openapi = new AdminDocument((await adminAsks(server, 'GET', '/openapi.json', null)).body);
  const ask = async (
    method: 'get' | 'post',
    path: string,
    token: string | null,
    body: Members | null = null,
  ): Promise<AdminReply> => {
    const reply = await adminAsks(server, method.toUpperCase(), path, token, body);
    openapi.check(method, path, reply);
    return reply;
  };
  return { openapi, ask };
}
