import type { Connector } from './manifest.js';

/** The variable that holds the URL of the role that questions are asked as. */
export function urlVariable({ urlEnv }: Pick<Connector, 'urlEnv'>): string {
  return urlEnv ?? 'OSL_POSTGRES_URL';
}

/** The variable that holds the URL of the role for what is the gateway's own: stores of facets, and the catalog. */
export function systemUrlVariable(connector: Pick<Connector, 'urlEnv'>): string {
  return `${urlVariable(connector)}_SYSTEM`;
}
