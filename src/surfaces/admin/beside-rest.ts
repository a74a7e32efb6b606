import type { FastifyInstance, FastifySchema } from 'fastify';
import type { InsightParts } from '../../ask/operating/look.js';
import type { OperatingParts } from '../../ask/operating/operate.js';
import type { MoreRoutes } from '../http/server.js';
import { HIDDEN_OPERATION } from '../rest/openapi/operations.js';
import { ADMIN_METHODS, sessionRoutes, shownRoutes } from './http.js';
import { insightRoutes } from './insight-routes.js';
import { INSIGHT_OPERATIONS, OPERATIONS } from './operations.js';

/** What stays on the admin listener: nobody stops a server with a token that a browser has. */
const APART: ReadonlySet<string> = new Set([
  '/admin/drain',
  '/admin/resume',
  '/admin/reload',
  '/admin/shutdown',
  '/admin/tokens/revoke',
  '/admin/tokens/revoked',
  '/openapi.json',
]);

/** What the console's screens of admins ask, for the listener of REST. The document that anybody may read is silent of it. */
export function adminBesideRest(parts: () => OperatingParts & InsightParts): MoreRoutes {
  const methods = new Map([...ADMIN_METHODS].filter(([path]) => !APART.has(path)));
  return Object.freeze({
    methods,
    add: (app: FastifyInstance) => {
      shownRoutes(app, parts, hidden(OPERATIONS));
      sessionRoutes(app, parts, hidden(OPERATIONS));
      insightRoutes(app, parts, hidden(INSIGHT_OPERATIONS));
    },
  });
}

function hidden<K extends string>(operations: Readonly<Record<K, FastifySchema>>): Record<K, FastifySchema> {
  // The same names, each of them said nothing of.
  return Object.fromEntries(Object.keys(operations).map((name) => [name, HIDDEN_OPERATION])) as Record<
    K,
    FastifySchema
  >;
}
