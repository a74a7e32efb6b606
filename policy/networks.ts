import { BlockList, isIP } from 'node:net';

/** `10.0.0.0/8`, `fd00::/8`, or one address; null for anything else. */
function networkOf(text: string): { readonly address: string; readonly prefix: number } | null {
  const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const most = isIP(address) === 4 ? 32 : 128;
  const prefix = bits === undefined ? most : Number(bits);
  return isIP(address) === 0 || prefix > most ? null : { address, prefix };
}

/**
 * Whether an address is in one of `networks`; a text in place of that names the first that is none. An IPv4 address
 * that a socket of IPv6 shows (`::ffff:10.0.0.1`) is the IPv4 address.
 */
export function networksOf(networks: readonly string[]): ((address: string) => boolean) | string {
  const list = new BlockList();
  for (const text of networks) {
    const network = networkOf(text);
    if (network === null) return text;
    list.addSubnet(network.address, network.prefix, familyOf(network.address));
  }
  return (address) => {
    const plain = (address.split('%', 1)[0] ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
    return isIP(plain) !== 0 && list.check(plain, familyOf(plain));
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}
