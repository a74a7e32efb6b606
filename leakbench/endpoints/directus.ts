import {
  type Answer,
  type EndpointKind,
  NotExpressible,
  type Session,
  WORLDS,
  type WorldName,
} from '../endpoint.js';
import { ADMIN, CLERK, grant, startDirectus } from './directus-server.js';
import { partsOf } from './http.js';
import { freePort, type Running } from './process.js';
import { parseSelect } from './select.js';

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
  return {
    columns: Object.keys(rows[0] ?? {}),
    rows: rows.map((row) => Object.values(row).map((cell) => JSON.stringify(cell))),
    tag: null,
    notices: partsOf(response, text),
    error: errors === undefined ? null : JSON.stringify(errors),
  };
}

export const DIRECTUS: EndpointKind = {
  name: 'Directus',
  data: 'everything',
  start: async ({ owner }) => {
    const ports = new Map<WorldName, number>();
    const running: Running[] = [];
    const close = async (): Promise<void> => {
      for (const each of running) await each.stop();
    };
    try {
      for (const world of WORLDS) {
        const port = await freePort();
        ports.set(world, port);
        running.push(await startDirectus(owner[world], port));
        await grant(port);
      }
    } catch (error) {
      await close();
      throw error;
    }
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
