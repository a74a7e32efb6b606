import type { EndpointKind } from '../endpoint.js';
import { CLERK_COLUMNS, run } from '../world.js';
import { directSessions, openPostgres, withRole } from './postgres.js';

const ROLE = 'leakbench_copies_clerk';

/** Databases that have nothing else than what the clerk may see. What is found here is a fault of the bench. */
export const COPIES: EndpointKind = {
  name: 'copies',
  data: 'visible',
  start: async ({ owner }) => {
    const grants = `grant select on ${Object.keys(CLERK_COLUMNS).join(', ')} to ${ROLE};`;
    for (const url of Object.values(owner)) await run(url, withRole(ROLE, grants));
    const open = await directSessions(owner.a, ROLE);
    return {
      what: 'Postgres without what the clerk may not see',
      open: (world, login) => open(owner[world], login),
      close: async () => undefined,
    };
  },
};

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
