type BrowserStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'clear'>;
type StoragePlace = { readonly [name in 'localStorage' | 'sessionStorage']: BrowserStorage };

/** Storage that ends with the page. */
class PageStorage implements BrowserStorage {
  readonly #values = new Map<string, string>();

  getItem(key: string): string | null {
    return this.#values.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    this.#values.set(key, value);
  }

  removeItem(key: string): void {
    this.#values.delete(key);
  }

  clear(): void {
    this.#values.clear();
  }
}

/** Replaces storage that the browser blocks, as it does for pages without cookies: there, any access throws. */
export function replaceBlockedStorage(place: StoragePlace): void {
  for (const name of ['localStorage', 'sessionStorage'] as const) {
    try {
      place[name].getItem('');
    } catch {
      Object.defineProperty(place, name, { value: new PageStorage() });
    }
  }
}
