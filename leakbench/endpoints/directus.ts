import { type Answer, type EndpointKind, NotExpressible, type Session } from '../endpoint.js';
import { ADMIN, CLERK, grant, startDirectus } from './directus-server.js';
import { objectsAnswer } from './http.js';
import { parseSelect } from './select.js';
import { startForWorlds } from './world-servers.js';

/** Session that sends paths, and the simple SELECTs for which the API has a form. */
function directusSession(port: number, token: string): Session {
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

interface Reply {
  readonly data?: unknown;
  readonly errors?: unknown;
}

function answerOf(response: Response, text: string): Answer {
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  const { data, errors } = (isJson ? JSON.parse(text) : {}) as Reply;
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
