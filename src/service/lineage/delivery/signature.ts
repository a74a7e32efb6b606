import { createHmac } from 'node:crypto';

/** The headers of Standard Webhooks for one attempt at delivering `body`; `keys` newest first, `seconds` since 1970. */
export function signedHeaders(
  id: string,
  seconds: number,
  body: string,
  keys: readonly Uint8Array[],
): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const content = `${id}.${seconds}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`);
  return {
    'webhook-id': id,
    'webhook-timestamp': `${seconds}`,
    'webhook-signature': signatures.join(' '),
  };
}
