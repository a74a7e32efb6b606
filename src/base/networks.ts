import { BlockList, isIP } from 'node:net';

export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** Parses a network such as `10.0.0.0/8` or `fd00::/8`, or a single address; null for any other text. */
export function networkOf(text: string): Network | null {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0) return null;
  const most = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? most : Number(bits);
  return prefix > most ? null : { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

const LOOPBACK = ['127.0.0.0/8', '::1'];

/** Returns a test for addresses that are loopback or in one of `networks`, each valid for `networkOf`. */
export function localOrIn(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of [...LOOPBACK, ...networks].map(networkOf))
    if (network !== null) list.addSubnet(network.address, network.prefix, network.family);
  return (address) => {
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
    const version = isIP(plain);
    return version !== 0 && list.check(plain, version === 4 ? 'ipv4' : 'ipv6');
  };
}
