import type { FastifyInstance, FastifySchema } from 'fastify';
import type { InsightParts } from '../../ask/operating/look.js';
import type { OperatingParts } from '../../ask/operating/operate.js';
import type { MoreRoutes } from '../http/server.js';
import { HIDDEN_OPERATION } from '../rest/openapi/operations.js';
import { ADMIN_METHODS, sessionRoutes, shownRoutes } from './http.js';
import { insightRoutes } from './insight-routes.js';
import { INSIGHT_OPERATIONS, OPERATIONS } from './operations.js';

/** Routes only on the admin listener: a token in a browser must not be able to stop a server. */
const APART: ReadonlySet<string> = new Set([
  '/admin/drain',
  '/admin/resume',
  '/admin/reload',
  '/admin/shutdown',
  '/admin/tokens/revoke',
  '/admin/tokens/revoked',
  '/openapi.json',
]);

/** Routes of the console's admin pages, for the REST listener. They are omitted from the public document. */
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
  // the same names, each hidden
  return Object.fromEntries(Object.keys(operations).map((name) => [name, HIDDEN_OPERATION])) as Record<
    K,
    FastifySchema
  >;
}
