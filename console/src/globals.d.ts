declare module '*.css';

/** Trusted Types, used to create the page's HTML policy; undefined in browsers without them. */
interface Window {
  readonly trustedTypes?: {
    createPolicy(
      name: string,
      rules: { createHTML(text: string): string; createScriptURL(url: string): string },
    ): unknown;
  };
}

interface ImportMeta {
  /** Provided by Vite: matching modules, each loaded on demand. */
  glob<T>(pattern: string): Readonly<Record<string, () => Promise<T>>>;
}
