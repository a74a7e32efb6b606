import { BlockList, isIP, isIPv4 } from 'node:net';
import { type Network, networkOf } from '../../../base/networks.js';

/** Networks that webhooks may not reach: this host, private, shared, reserved and multicast networks. */
const RESERVED: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Within public IPv6: documentation, and addresses that embed IPv4.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
];

const PUBLIC_V6: readonly string[] = ['2000::/3'];

/** Parses CIDR notation. @throws Error if malformed */
export function parseNetwork(text: string): Network {
  const network = text.includes('/') ? networkOf(text) : null;
  if (network === null) throw new Error(`\`${text}\` is no network, such as 10.0.0.0/8 or fd00::/8`);
  return network;
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const { address, prefix, family } of networks.map(parseNetwork))
    list.addSubnet(address, prefix, family);
  return list;
}

/** Decides which network addresses an endpoint may have. */
export class AddressRule {
  readonly #reserved = blockListOf(RESERVED);
  readonly #publicV6 = blockListOf(PUBLIC_V6);
  readonly #allowed: BlockList;
  readonly #usesTls: boolean;

  /** @param usesTls true for TLS; without it, only addresses in `allowAddresses` are permitted */
  constructor(allowAddresses: readonly string[], usesTls: boolean) {
    this.#allowed = blockListOf(allowAddresses);
    this.#usesTls = usesTls;
  }

  permits(address: string): boolean {
    const normalized = normalizeAddress(address);
    const family = isIPv4(normalized) ? 'ipv4' : 'ipv6';
    if (isIP(normalized) === 0) return false;
    if (this.#allowed.check(normalized, family)) return true;
    if (!this.#usesTls || this.#reserved.check(normalized, family)) return false;
    return family === 'ipv4' || this.#publicV6.check(normalized, family);
  }
}

/** Converts IPv4-mapped IPv6 addresses to IPv4, and removes scopes. */
function normalizeAddress(address: string): string {
  const withoutScope = address.replace(/%.*$/, '');
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(withoutScope)?.[1];
  if (dotted !== undefined) return dotted;
  const hex = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(withoutScope);
  if (hex === null) return withoutScope;
  const [high, low] = [Number.parseInt(hex[1] ?? '', 16), Number.parseInt(hex[2] ?? '', 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
