import { readUpstream, type UpstreamSchema } from '../discovery/index.js';
import { UpstreamFailure } from '../engine/index.js';
import type { Service } from '../service.js';

/** What a connector's database declares, or in words why that could not be read; the operator hears the rest. */
export async function upstreamOf(
  service: Service,
  requestId: string,
  connector: string,
): Promise<UpstreamSchema | string> {
  const engine = service.engines.get(connector);
  if (engine === undefined) return 'it is not open';
  try {
    return await readUpstream(engine.system);
  } catch (error) {
    service.log.warn('catalog not read', {
      connector,
      request_id: requestId,
      error: error instanceof Error ? error.message : String(error),
    });
    return error instanceof UpstreamFailure
      ? `its database refused to be read (SQLSTATE ${error.sqlstate})`
      : 'its database cannot be reached with system credentials';
  }
}
