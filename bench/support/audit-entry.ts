import type { AuditEntry } from '../../audit/index.js';

/** Fields common to all records of a wire query about one object. */
export function questionAbout(object: string) {
  return {
    tenant: 'bench',
    surface: 'wire',
    action: 'query',
    subject: 'user:bench',
    chain: ['user:bench'],
    form: 'structured',
    objects: [object],
    versions: { manifest: '0123456789abcdef0123456789abcdef', policy: 'fedcba9876543210fedcba9876543210' },
  } as const satisfies Partial<AuditEntry>;
}

/** A record of such a query. */
export function entryAbout(object: string, kind: AuditEntry['kind'], requestId: string): AuditEntry {
  return {
    ...questionAbout(object),
    kind,
    request_id: requestId,
    statement_hmac: `1.${'x'.repeat(43)}`,
  };
}
