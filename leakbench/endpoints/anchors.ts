import type { EndpointKind } from '../endpoint.js';
import { CLERK_COLUMNS } from '../world.js';
import { onServer, openPostgres } from './postgres.js';

const ROLE = 'leakbench_copies_clerk';

/** Databases that have nothing else than what the clerk may see. What is found here is a fault of the bench. */
export const COPIES = onServer({
  name: 'copies',
  data: 'visible',
  what: 'Postgres without what the clerk may not see',
  role: ROLE,
  script: `grant select on ${Object.keys(CLERK_COLUMNS).join(', ')} to ${ROLE};`,
});

/** The tables themselves, read by their owner. What is not found here is found nowhere. */
export const UNPROTECTED: EndpointKind = {
  name: 'unprotected',
  data: 'everything',
  start: async ({ owner }) => ({
    what: 'Postgres, and the clerk is its owner',
    open: (world, login) => openPostgres(owner[world], login),
    close: async () => undefined,
  }),
};
