import { type ComponentType, type LazyExoticComponent, lazy } from 'react';
import { ADMIN_SCREENS, SCREENS, type ScreenName } from './routes.js';

interface ScreenModule {
  readonly Screen: ComponentType;
}

const modules = import.meta.glob<ScreenModule>('../screens/*/index.tsx');

/** The screens that were built, each loaded when it is first shown. */
const LOADED: ReadonlyMap<ScreenName, LazyExoticComponent<ComponentType>> = new Map(
  SCREENS.flatMap((name) => {
    const load = modules[`../screens/${name}/index.tsx`];
    return load === undefined
      ? []
      : [[name, lazy(async () => ({ default: (await load()).Screen }))] as const];
  }),
);

export function screenNamed(name: ScreenName): LazyExoticComponent<ComponentType> | null {
  return LOADED.get(name) ?? null;
}

/** The screens that somebody may go to. */
export function screensFor(isAdmin: boolean): readonly ScreenName[] {
  return SCREENS.filter((name) => LOADED.has(name) && (isAdmin || !ADMIN_SCREENS.has(name)));
}
