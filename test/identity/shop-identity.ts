import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SHOP_POLICY } from '../support/shop.js';
import { CLIENT, RESOURCE, startProvider, type TestProvider } from './provider.js';
import { type Signer, signer } from './signers.js';

/** An issuer whose tokens the tests sign themselves: for what no provider would sign. */
export const SIGNED = 'https://signed.example';

/** A real provider and an issuer of tests, in a file of issuers, with rules of the shop's policy for both. */
export interface ShopIdentity {
  readonly provider: TestProvider;
  readonly key: Signer;
  readonly issuersFile: string;
  readonly policy: string;
  close(): Promise<void>;
}

export function rulesOf(issuer: string): string {
  const people = (name: string, from: string): string => `
  - name: ${name}
    issuer: ${from}
    when: { groups: [shop-regional, shop-analysts] }
    subject: "user:{sub}"
    ceiling: [regional, analyst, no_addresses]
    admin: [TENANT_ADMIN]
    roles:
      claim: groups
      map: { shop-regional: regional, shop-analysts: analyst, shop-careful: [no_addresses] }
    attributes:
      region: { claim: region, among: [eu, us] }`;
  return `exchange:${people('people', issuer)}${people('signed', SIGNED)}
    direct: true
  - name: agents
    issuer: ${issuer}
    when: { groups: shop-agents }
    subject: "agent:{client_id}"
    ceiling: [analyst, regional]
    attributes: { region: { any: true } }
    direct: true
  - name: mail
    issuer: ${SIGNED}
    when: { kind: mail }
    subject: "user:{email}"
    ceiling: [analyst]
`;
}

export async function startShopIdentity(resources: readonly string[] = []): Promise<ShopIdentity> {
  const provider = await startProvider({ resources });
  const key = signer('signed', 'ES256');
  const dir = mkdtempSync(join(tmpdir(), 'osl-issuers-'));
  const issuersFile = join(dir, 'issuers.yaml');
  writeFileSync(join(dir, 'signed.json'), JSON.stringify({ keys: [key.jwk] }));
  const common = { tokens: 'identity', audiences: [RESOURCE, ...resources], clients: [CLIENT] };
  const login = { client_id: CLIENT, scopes: ['openid', 'offline_access'] };
  writeFileSync(
    issuersFile,
    JSON.stringify({
      issuers: [
        { issuer: provider.issuer, ...common, cool_down_seconds: 1, refresh_seconds: 3_600, login },
        { issuer: SIGNED, ...common, keys: ['signed.json'], max_lifetime_seconds: 3_600 },
      ],
    }),
  );
  return {
    provider,
    key,
    issuersFile,
    policy: `${SHOP_POLICY}${rulesOf(provider.issuer)}`,
    close: async () => {
      await provider.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
