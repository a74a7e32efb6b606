import type { AuditLog } from '../../audit/index.js';
import type { Limiter } from '../../policy/index.js';
import type { AnswerParts } from '../../src/ask/index.js';
import { SealedValue } from '../../src/ask/request/sealed.js';
import type { GovernedEngine } from '../../src/engine/index.js';

/** Parts of a service that its surfaces hold sealed. */
interface SealedParts {
  readonly audit: AuditLog;
  readonly limiter: Limiter;
  readonly engines: ReadonlyMap<string, GovernedEngine>;
}

/** Content of a seal. The build hides `open` from everything outside ask; it is there at run time. */
const { open } = SealedValue as unknown as { open<T>(sealed: SealedValue<T>): T };

export function sealedParts({
  controls: means,
  runners,
}: Pick<AnswerParts, 'controls' | 'runners'>): SealedParts {
  const { recording, limiter } = open(means);
  return {
    audit: recording.audit as AuditLog, // service start seals the whole log
    limiter: limiter as Limiter, // and the whole limiter
    engines: open(runners),
  };
}

/** `service` with other parts in the seals. */
export function sealing<S extends AnswerParts>(service: S, other: Partial<SealedParts>): S {
  const own = sealedParts(service);
  const { audit, limiter, engines } = { ...own, ...other };
  const { recording } = open(service.controls);
  return {
    ...service,
    ...(other.audit !== undefined && { audit }),
    controls: new SealedValue({ recording: { ...recording, audit }, limiter }),
    engines: new Map([...engines].map(([name, { status }]) => [name, status])),
    runners: new SealedValue(engines),
  };
}
