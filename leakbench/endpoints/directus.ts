import { type EndpointAnswer, type EndpointKind, type EndpointSession, NotExpressible } from '../endpoint.js';
import { CLERK_COLUMNS } from '../world.js';
import { objectsAnswer, parseSelect } from './http.js';
import { newDirectory, ready, type StartedProcess, start, startForWorlds } from './process.js';

/** Session that sends paths, and the simple SELECTs for which the API has a form. */
function directusSession(port: number, token: string): EndpointSession {
  return {
    ask: async (text, values) => {
      if (values !== undefined) throw new NotExpressible('parameters are not translated');
      const path = text.startsWith('/') ? text : pathOf(text);
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
      return answerOf(response, await response.text());
    },
    close: async () => undefined,
  };
}

/** `select id from customer where region = 'south' limit 3` as a path of the API. */
function pathOf(sql: string): string {
  const { table, columns, where, order, limit, offset } = parseSelect(sql);
  const query = new URLSearchParams({
    limit: String(limit ?? -1),
    ...(offset !== null && { offset: String(offset) }),
  });
  if (columns === 'count') query.set('aggregate[count]', '*');
  else query.set('fields', columns === '*' ? '*' : columns.join(','));
  for (const { column, value } of where) query.set(`filter[${column}][_eq]`, String(value));
  const keys = order.map(({ column, descends }) => (descends ? `-${column}` : column));
  if (keys.length > 0) query.set('sort', keys.join(','));
  return `/items/${table}?${query}`;
}

interface DirectusReply {
  readonly data?: unknown;
  readonly errors?: unknown;
}

function answerOf(response: Response, text: string): EndpointAnswer {
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  const { data, errors } = (isJson ? JSON.parse(text) : {}) as DirectusReply;
  const rows = (Array.isArray(data) ? data : []) as readonly Readonly<Record<string, unknown>>[];
  return objectsAnswer(rows, errors, response, text);
}

export const DIRECTUS: EndpointKind = {
  name: 'Directus',
  data: 'everything',
  start: async ({ owner }) => {
    const { ports, close } = await startForWorlds(async (world, port, onStart) => {
      onStart(await startDirectus(owner[world], port));
      await grant(port);
    });
    return {
      what: 'Directus with permissions of rows and fields',
      languages: ['directus'],
      others: ['admin'],
      open: async (world, login, caller) => {
        if (login !== undefined) throw new NotExpressible('a request has no login but its token');
        return directusSession(ports.get(world) ?? 0, caller === 'admin' ? ADMIN : CLERK);
      },
      close,
    };
  },
};

/** Tokens of the admin, who is made at the first start, and of the clerk. */
const [ADMIN, CLERK] = ['leakbench-admin', 'leakbench-clerk'];

/** Starts Directus on a database, by the command in `LEAKBENCH_DIRECTUS`. */
async function startDirectus(owner: string, port: number): Promise<StartedProcess> {
  const { hostname, port: at, pathname, username, password } = new URL(owner);
  const database = {
    DB_CLIENT: 'pg',
    DB_HOST: hostname,
    DB_PORT: at || '5432',
    DB_DATABASE: pathname.slice(1),
  };
  const admin = {
    ADMIN_EMAIL: 'admin@example.com',
    ADMIN_PASSWORD: 'admin of the bench',
    ADMIN_TOKEN: ADMIN,
  };
  const keys = { KEY: 'key of the bench', SECRET: 'a secret of the bench, which is long enough' };
  const http = { HOST: '127.0.0.1', PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}` };
  const login = { DB_USER: decodeURIComponent(username), DB_PASSWORD: decodeURIComponent(password) };
  const env = { ...database, ...login, ...admin, ...keys, ...http, TELEMETRY: 'false' };
  const command = process.env['LEAKBENCH_DIRECTUS'] ?? 'npx --yes directus';
  const dir = newDirectory('directus');
  const bootstrap = await start(dir, command, ['bootstrap'], env);
  if (bootstrap.child.exitCode === null)
    await new Promise((resolve) => bootstrap.child.once('exit', resolve));
  const running = await start(dir, command, ['start'], env);
  await ready(running, () =>
    fetch(`${http.PUBLIC_URL}/server/ping`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return running;
}

/** Rules of the clerk: fields, and a filter of rows, for each collection. */
async function grant(port: number): Promise<void> {
  const create = async (path: string, body: object): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`Directus refused ${path}: ${text}`);
    return (JSON.parse(text) as { readonly data: { readonly id: string } }).data.id;
  };
  const role = await create('roles', { name: 'clerk' });
  const policy = await create('policies', { name: 'clerk', admin_access: false, app_access: false });
  await create('access', { role, policy });
  for (const [collection, fields] of Object.entries(CLERK_COLUMNS)) {
    const permissions = collection === 'region' ? {} : { region: { _icontains: 'north' } };
    await create('permissions', { policy, collection, action: 'read', fields, permissions });
  }
  await create('users', { email: 'clerk@example.com', password: 'clerk of the bench', role, token: CLERK });
}
