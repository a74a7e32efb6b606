import type { LineageEndpoint } from '../../../src/service/lineage/config/load.js';

/** What the receivers of these tests verify with; processes that a test starts have it too. */
export const SECRET = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;
process.env['OSL_TEST_LINEAGE_SECRET'] = SECRET;
const REFERENCE = 'env:OSL_TEST_LINEAGE_SECRET';

/** A receiver of everything on loopback. */
export function endpointAt(url: string, name = 'here'): LineageEndpoint {
  return {
    name,
    url,
    secrets: [REFERENCE],
    events: ['run', 'dataset'],
    authorization: null,
    ca: null,
    allowAddresses: ['127.0.0.1/32'],
    timeoutMs: 2_000,
  };
}

/** The same as the file that OSL_LINEAGE names. */
export function lineageYaml(url: string): string {
  return `version: 1
endpoints:
  here:
    url: ${url}
    secrets: ["${REFERENCE}"]
    allow_addresses: [127.0.0.1/32]
`;
}
