#include <dlfcn.h>
#include <stdio.h>

/* Loads the library that the argument names, and calls its function start_plugin. */
int main(int count, char **arguments)
{
    void *plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*start)(void) = plugin ? (int (*)(void))dlsym(plugin, "start_plugin") : NULL;
    if (!start) {
        fprintf(stderr, "no plug-in: %s\n", dlerror());
        return 2;
    }
    return start();
}
